"""What was said: conversations, records on disk, exports."""

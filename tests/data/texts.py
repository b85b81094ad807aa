"""Texts that the scripts of scripted.py change."""

SHAPES = """\
import math


# a circle, given by its radius
class Circle:
    def __init__(self, radius):
        self.radius = radius

    # the area of the disc
    def area(self):
        return math.pi * self.radius ** 2

    # the length of the border
    def perimeter(self):
        return 2 * math.pi * self.radius


# a rectangle, given by its sides
class Rectangle:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    # the product of the sides
    def area(self):
        return self.width * self.height

    # twice the sum of the sides
    def perimeter(self):
        return 2 * (self.width + self.height)

    # whether all sides are equal
    def is_square(self):
        return self.width == self.height
"""

WORDS = """\
def word_count(text):
    counts = {}
    for word in text.lower().split():
        word = word.strip('.,;:!?')
        if word:
            counts[word] = counts.get(word, 0) + 1
    return counts


def longest_line(text):
    lines = text.split('\\n')
    return max(lines, key=len)


def is_palindrome(text):
    letters = [c for c in text.lower() if c.isalpha()]
    return letters == letters[::-1]


def caesar(text, shift):
    result = []
    for c in text:
        if c.isalpha():
            base = ord('A') if c.isupper() else ord('a')
            result.append(chr((ord(c) - base + shift) % 26 + base))
        else:
            result.append(c)
    return ''.join(result)
"""

CART = """\
class Cart {
  constructor(user) {
    this.user = user;
    this.lines = [];
  }

  add(product, quantity) {
    const line = this.lines.find((l) => l.product.id === product.id);
    if (line) {
      line.quantity += quantity;
    } else {
      this.lines.push({ product, quantity });
    }
  }

  remove(product) {
    this.lines = this.lines.filter((l) => l.product.id !== product.id);
  }

  total() {
    return this.lines.reduce((sum, l) => sum + l.product.price * l.quantity, 0);
  }

  checkout(payment) {
    if (this.lines.length === 0) {
      throw new Error("cart is empty");
    }
    payment.charge(this.user, this.total());
    this.lines = [];
  }
}
"""

PEOPLE = [
    {"id": 1, "name": "Ada", "city": "London", "skills": ["algebra", "engines"], "active": True},
    {"id": 2, "name": "Grace", "city": "New York", "skills": ["compilers", "ships"], "active": True},
    {"id": 3, "name": "Edsger", "city": "Nuenen", "skills": ["paths", "semaphores", "letters"], "active": False},
    {"id": 4, "name": "Barbara", "city": "Boston", "skills": ["types"], "active": True},
]

HARBOUR = """\
The harbour at Saltmere was once the busiest on the coast. Ships from the colonies unloaded grey wool, coloured \
glass and barrels of sugar at the long stone quay, and the labourers' favourite inn, the Anchor, stood just behind \
the customs house. In 1867 a new breakwater was built, but the centre of trade had already moved to the railway town\
 of Colne, eleven miles inland. The last steamer left in 1912. Since then the basin has silted up, and only small \
boats can enter at high tide. In recent years the council has organised a programme of repairs: the quay has been \
catalogued and measured, the theatre in the old rope works has reopened, and every summer a festival honours the \
neighbours who kept the lifeboat station manned through the hardest winters."""

BREAD = """\
做面包需要面粉、水、盐和酵母。先把面粉倒入大碗，加入温水和酵母，搅拌成团，静置二十分钟。然后加入盐，揉面十分钟，\
直到面团光滑有弹性。把面团放回碗中，盖上湿布，在温暖的地方发酵一小时，体积应增大一倍。接着把面团分成两份，整形后\
放在烤盘上，再发酵四十分钟。烤箱预热到二百二十度，烤三十分钟，直到面包表面金黄。取出后在架子上放凉，不要急着切开\
。"""

LIBRARY = """\
CREATE TABLE authors (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    born INTEGER
);

CREATE TABLE books (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    year INTEGER,
    author_id INTEGER REFERENCES authors (id)
);

CREATE TABLE loans (
    id INTEGER PRIMARY KEY,
    book_id INTEGER REFERENCES books (id),
    reader TEXT NOT NULL,
    taken TEXT NOT NULL,
    returned TEXT
);

INSERT INTO authors (name, born) VALUES ('Selma Lagerlof', 1858);
INSERT INTO books (title, year, author_id) VALUES ('Jerusalem', 1901, 1);
"""

SERVICES = """\
version: 2
services:
  web:
    image: registry.example.org/shop/web:1.8
    ports:
      - "8080:80"
    environment:
      LOG_LEVEL: info
      CACHE_URL: redis://cache:6379/0
    depends_on:
      - cache
      - database
  worker:
    image: registry.example.org/shop/worker:1.8
    environment:
      LOG_LEVEL: info
      CACHE_URL: redis://cache:6379/0
    depends_on:
      - cache
  cache:
    image: redis:7
  database:
    image: postgres:15
    volumes:
      - data:/var/lib/postgresql/data
"""

TOWNS = """\
| Town | County | Population | Station | Market day |
|---|---|---|---|---|
| Alford | Lincolnshire | 3459 | no | Tuesday |
| Beccles | Suffolk | 10123 | yes | Friday |
| Clun | Shropshire | 1184 | no | Thursday |
| Diss | Norfolk | 7572 | yes | Friday |
| Eye | Suffolk | 2154 | no | Wednesday |
| Frome | Somerset | 26203 | yes | Saturday |
| Goole | Yorkshire | 19518 | yes | Thursday |
| Holt | Norfolk | 3810 | no | Friday |
"""

STORE = """\
package store

import "errors"

type Store struct {
	items map[string]int
}

func New() *Store {
	return &Store{items: map[string]int{}}
}

func (s *Store) Put(key string, value int) {
	s.items[key] = value
}

func (s *Store) Get(key string) (int, error) {
	value, ok := s.items[key]
	if !ok {
		return 0, errors.New("not found")
	}
	return value, nil
}

func (s *Store) Delete(key string) error {
	if _, ok := s.items[key]; !ok {
		return errors.New("not found")
	}
	delete(s.items, key)
	return nil
}

func (s *Store) Len() int {
	return len(s.items)
}
"""

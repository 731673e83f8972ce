"""What the application needs of the world outside, as protocols; `seaway.adapters` fills them."""

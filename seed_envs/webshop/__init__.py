"""WebShop: an exact, fast online shop as a text environment, a web site and a browser environment."""

"""The shop as a web site: pages of the engine as HTML, for people and for the browser environment.

The site holds no shop logic. A POST becomes the command that the text environment would send.
"""

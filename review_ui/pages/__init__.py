"""One file a page; app.py names them. Each only calls what a script can call too, and draws it."""

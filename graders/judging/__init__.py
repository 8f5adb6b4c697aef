"""What a judge is made of: what it is asked (prompt), how votes become a ruling (jury), what is kept (cache)."""

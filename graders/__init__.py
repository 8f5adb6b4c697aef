"""What an agent did, judged: evidence, orders, facts seen, reports."""

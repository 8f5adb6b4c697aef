"""What the Results page shows: trials narrowed, leaderboard, breakdown, two agents compared. No page in here."""

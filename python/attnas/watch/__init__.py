"""nas-watch: runs in the browser, while other processes write them and after their end."""

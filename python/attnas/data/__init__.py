"""nas-data: corpora, the gates of a task, and tables of finished training runs."""

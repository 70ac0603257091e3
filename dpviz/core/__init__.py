"""What everything stands on: errors, options, streams, texts, and what mechanisms see and give."""

"""The practice site and the demo: a shop that turns hostile on request, and the story that is played against it."""

"""Page elements that several pages share."""

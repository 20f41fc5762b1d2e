"""Tables of lakes, read back by other implementations than those that write them."""

"""What is known beforehand: vendors, and the windows and prices of their models."""

"""Layer 7: the choke point: what a tool would do is planned, judged, asked about and only then done."""

"""Beside the layers: public fakes, contract suites and the crash harness; imported only by tests, ours and yours."""

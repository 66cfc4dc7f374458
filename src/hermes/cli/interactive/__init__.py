"""The chat screen: what a person sees and types while talking with the assistant in a terminal."""

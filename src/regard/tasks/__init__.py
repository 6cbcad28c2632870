"""What is learned: translation, language modelling, tagging, classification, each behind one protocol."""

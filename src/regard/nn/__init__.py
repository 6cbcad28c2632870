"""The mathematics: masks, attention, positions, recurrence, Transformer layers. It knows no settings, no text."""

"""Speed and memory beside the boosters' own objectives; every figure is a ratio measured in one process, in turn."""

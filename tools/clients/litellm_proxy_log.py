from evenhand_litellm import EvenhandLogger

log = EvenhandLogger()

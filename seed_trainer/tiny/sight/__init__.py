"""The embedded policy that sees: a tiny vision-language model that plays Sokoban and EZPoints from their pictures.

LLaVA's own classes at half a million weights, whose processor needs no torchvision. Made by ``seed-train make-tiny
--vision``.
"""

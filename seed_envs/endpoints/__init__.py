"""Chat endpoints that speak the OpenAI protocol: what is sent, what comes back, when to try again."""

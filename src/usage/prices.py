#!/usr/bin/env python3
"""Makes prices.tsv: python3 src/usage/prices.py TABLE SOURCE DATE > src/usage/prices.tsv

TABLE is `litellm/model_prices_and_context_window_backup.json` of the package litellm (MIT licence), SOURCE says which
version, and DATE the day on which it was read.
"""

import json
import re
import sys

# The names that litellm gives to providers, and the beginning of those in session files.
PROVIDERS = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "gemini": "google",
    "mistral": "mistral",
    "moonshot": "moonshot",
    "openai": "openai",
    "xai": "xai",
    "zai": "zai",
}
PRICES = [
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
]
# Models with other prices than those of text.
OTHERS = re.compile("audio|realtime|tts|search|ft:")


def per_million(price):
    return "-" if price is None else f"{price * 1e6:.6f}".rstrip("0").rstrip(".")


def row(name, model):
    provider = PROVIDERS.get(model.get("litellm_provider"))
    is_text = model.get("mode") in ("chat", "responses") and not OTHERS.search(name)
    if not provider or not is_text or name.count("/") > 1:
        return None
    prices = [model.get(price) for price in PRICES]
    if not prices[0] or not prices[1]:
        return None
    steps = [re.search(r"above_(\d+)k_tokens$", member) for member in model]
    until = min((int(step[1]) * 1000 for step in steps if step), default="-")
    return [provider, name.split("/")[-1], *map(per_million, prices), str(until)]


def main():
    table, source, date = sys.argv[1:]
    with open(table, encoding="utf-8") as file:
        models = json.load(file)
    rows = {}
    for name, model in models.items():
        made = row(name, model)
        if made:
            rows.setdefault((made[0], made[1]), made)
    print(f"# {date}: {source}. Dollars for a million tokens; until: the most input tokens at this price.")
    print("provider\tmodel\tinput\toutput\tcache_read\tcache_write\tuntil")
    for _, made in sorted(rows.items()):
        print("\t".join(made))


main()

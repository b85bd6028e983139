#!/usr/bin/env python3
"""Makes prices.tsv:

python3 src/usage/prices.py DATE "litellm 1.110.2" TABLE "litellm 1.76.0" OLDER > src/usage/prices.tsv

TABLE is `litellm/model_prices_and_context_window_backup.json` of the package litellm (MIT licence), and DATE the day on
which it was read. litellm drops models that are no longer sold, but histories have their answers: OLDER is the table of
an earlier version, for the models that TABLE lacks. Its names that end in `-latest` are left out, since the model and
the price behind such a name have changed.
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
# The providers whose models are also taken from the older table.
KEPT = ("anthropic", "google", "openai")
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


def rows_of(table):
    with open(table, encoding="utf-8") as file:
        models = json.load(file)
    rows = {}
    for name, model in models.items():
        made = row(name, model)
        if made:
            rows.setdefault((made[0], made[1]), made)
    return rows


def main():
    date, source, table, older_source, older_table = sys.argv[1:]
    is_kept = lambda provider, model: provider in KEPT and not model.endswith("-latest")
    older = {key: made for key, made in rows_of(older_table).items() if is_kept(*key)}
    rows = older | rows_of(table)
    print(
        f"# {date}: {source}. Models that it lacks: {older_source}."
        " Dollars for a million tokens; until: the most input tokens at this price."
    )
    print("provider\tmodel\tinput\toutput\tcache_read\tcache_write\tuntil")
    for _, made in sorted(rows.items()):
        print("\t".join(made))


main()

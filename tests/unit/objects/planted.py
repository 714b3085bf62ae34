"""Secrets of fifty kinds, made up anew for each test. None of them ever opened anything.

They are put together here, so that no file of the repository holds one.
"""

import random
import string

_HEX = "0123456789abcdef"
_WORD = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + string.digits

# rule: what stands before, the alphabet, how long, what stands behind
_SHAPES: dict[str, tuple[str, str, int, str]] = {
    "age-secret-key": ("AGE-SECRET-" + "KEY-1", _UPPER, 58, ""),
    "anthropic-key": ("sk-" + "ant-api03-", _WORD, 93, ""),
    "artifactory-token": ("AK" + "Cp", _WORD, 69, ""),
    "atlassian-token": ("ATA" + "TT3", _WORD, 186, ""),
    "aws-access-key-id": ("AK" + "IA", _UPPER, 16, ""),
    "databricks-token": ("da" + "pi", _HEX, 32, ""),
    "digitalocean-token": ("dop_" + "v1_", _HEX, 64, ""),
    "dockerhub-token": ("dckr_" + "pat_", _WORD, 27, ""),
    "doppler-token": ("dp." + "pt.", _WORD, 43, ""),
    "figma-token": ("fi" + "gd_", _WORD, 43, ""),
    "flyio-token": ("fm" + "2_", _WORD, 120, ""),
    "github-fine-grained-token": ("github_" + "pat_", _WORD, 82, ""),
    "github-token": ("gh" + "p_", _WORD, 36, ""),
    "gitlab-token": ("gl" + "pat-", _WORD, 20, ""),
    "google-api-key": ("AI" + "za", _WORD, 35, ""),
    "google-oauth-secret": ("GOC" + "SPX-", _WORD, 28, ""),
    "google-oauth-token": ("ya" + "29.", _WORD, 60, ""),
    "grafana-token": ("gl" + "sa_", _WORD, 32, "_0a1b2c3d"),
    "groq-key": ("gs" + "k_", _WORD, 52, ""),
    "heroku-key": ("HR" + "KU-", _WORD, 36, ""),
    "huggingface-token": ("h" + "f_", _WORD, 34, ""),
    "linear-key": ("lin_" + "api_", _WORD, 40, ""),
    "mailchimp-key": ("", _HEX, 32, "-us" + "14"),
    "mailgun-key": ("key" + "-", _HEX, 32, ""),
    "newrelic-key": ("NR" + "AK-", _UPPER, 27, ""),
    "notion-token": ("nt" + "n_", _WORD, 46, ""),
    "npm-token": ("np" + "m_", _WORD, 36, ""),
    "nvidia-key": ("nv" + "api-", _WORD, 64, ""),
    "perplexity-key": ("pp" + "lx-", _WORD, 48, ""),
    "planetscale-token": ("pscale_" + "tkn_", _WORD, 43, ""),
    "postman-key": ("PM" + "AK-", _HEX, 24, "-" + "0123456789abcdef01" + "0123456789abcdef"),
    "pulumi-token": ("pu" + "l-", _HEX, 40, ""),
    "pypi-token": ("py" + "pi-AgE", _WORD, 160, ""),
    "replicate-token": ("r" + "8_", _WORD, 37, ""),
    "rubygems-key": ("rubygems" + "_", _HEX, 48, ""),
    "sendgrid-key": ("S" + "G.", _WORD, 22, "." + "aB3" * 14 + "x"),
    "sentry-token": ("sntr" + "yu_", _HEX, 64, ""),
    "shopify-token": ("shp" + "at_", _HEX, 32, ""),
    "sk-key": ("sk" + "-proj-", _WORD, 48, "7"),
    "slack-app-token": ("xa" + "pp-1-A0123-456-", _HEX, 64, ""),
    "slack-token": ("xo" + "xb-1234567890-", _WORD, 24, ""),
    "square-token": ("sq0" + "atp-", _WORD, 22, ""),
    "stripe-key": ("sk_" + "live_", _WORD, 24, ""),
    "stripe-webhook-secret": ("wh" + "sec_", _WORD, 32, ""),
    "supabase-token": ("sb" + "p_", _HEX, 40, ""),
    "tailscale-key": ("ts" + "key-auth-", _WORD, 20, ""),
    "telegram-token": ("123456789:" + "AA", _WORD, 33, ""),
    "vault-token": ("hv" + "s.", _WORD, 90, ""),
    "xai-key": ("xa" + "i-", _WORD, 80, ""),
    "jwt": ("ey" + "J", _WORD, 20, ".ey" + "J0123456789abc.c2lnbmF0dXJl"),
}

# Those that only what stands around them gives away: before, alphabet, length, behind.
_SETTINGS: dict[str, tuple[str, str, int, str]] = {
    "airtable-token": ("airtable: pat" + "A1b2C3d4E5f6G7.", _HEX, 64, ""),
    "assigned-secret": ("DB_PASSWORD=", _WORD, 20, "4a\nnext line"),
    "authorization": ("Authorization: Bearer ", _WORD, 40, ""),
    "aws-secret-access-key": ("aws_secret_access_key = ", _WORD, 40, ""),
    "azure-account-key": ("AccountName=x;AccountKey=", _WORD, 86, "==;"),
    "discord-webhook": ("https://discord.com/api/webhooks/123456/", _WORD, 68, ""),
    "private-key": (
        "-----BEGIN RSA PRIVATE " + "KEY-----\n",
        _WORD,
        900,
        "\n-----END RSA PRIVATE KEY-----",
    ),
    "slack-webhook": ("https://hooks.slack.com/services/T0123/B0123/", _WORD, 24, ""),
    "terraform-token": ("A1b2C3d4E5f6G7." + "atlasv1.", _WORD, 67, ""),
    "twilio-key": ("twilio: S" + "K", _HEX, 32, ""),
    "url-password": ("postgresql://agent:", _WORD, 12, "@db.internal:5432/app"),
}


def secrets(seed: int = 1) -> dict[str, str]:
    """One secret for each rule that knows a secret by its own mark."""
    draw = random.Random(seed)
    return {
        rule: before + "".join(draw.choices(alphabet, k=length)) + behind
        for rule, (before, alphabet, length, behind) in _SHAPES.items()
    }


def settings(seed: int = 1) -> dict[str, tuple[str, str]]:
    """(the secret itself, the text that it stands in) for each of the other rules."""
    draw = random.Random(seed)
    made = {}
    for rule, (before, alphabet, length, behind) in _SETTINGS.items():
        secret = "".join(draw.choices(alphabet, k=length))
        made[rule] = secret, before + secret + behind
    return made

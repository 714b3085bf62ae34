"""What secrets look like: the rules of `redact=True`.

Written from the formats that the issuers document: nearly all of them begin with a mark of their
own. A few rules go by what stands before a secret instead. Each has keywords, so that most texts
are not searched at all, and no pattern can run away on a long text: repeats are bounded, or
cannot give back what they took.
"""

import re

from hardsave.objects.redaction import Redaction, Rule

# name: keywords, and the token that has one of them
_TOKENS: dict[str, tuple[tuple[str, ...], str]] = {
    "age-secret-key": (("age-secret-key-1",), r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    "anthropic-key": (("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{20,}"),
    "artifactory-token": (("akcp",), r"AKCp[A-Za-z0-9]{60,}"),
    "atlassian-token": (("atatt3",), r"ATATT3[A-Za-z0-9_=-]{100,}"),
    "databricks-token": (("dapi",), r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    "digitalocean-token": (("doo_v1_", "dop_v1_", "dor_v1_"), r"do[opr]_v1_[0-9a-f]{60,}"),
    "dockerhub-token": (("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    "doppler-token": (
        ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}",
    ),
    "figma-token": (("figd_",), r"figd_[A-Za-z0-9_-]{40,}"),
    "flyio-token": (("fm2_",), r"fm2_[A-Za-z0-9+/=]{100,}"),
    "github-fine-grained-token": (("github_pat_",), r"github_pat_[A-Za-z0-9_]{40,}"),
    "gitlab-token": (
        (
            "glpat-",
            "gldt-",
            "glrt-",
            "glcbt-",
            "glptt-",
            "glft-",
            "glsoat-",
            "glagent-",
            "glimt-",
            "gloas-",
        ),
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas)-[A-Za-z0-9_.-]{20,}",
    ),
    "google-api-key": (("aiza",), r"AIza[A-Za-z0-9_-]{35}"),
    "google-oauth-secret": (("gocspx-",), r"GOCSPX-[A-Za-z0-9_-]{28}"),
    "google-oauth-token": (("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    "grafana-token": (("glc_", "glsa_"), r"(?:glc|glsa)_[A-Za-z0-9+/=_]{32,}"),
    "groq-key": (("gsk_",), r"gsk_[A-Za-z0-9]{40,}"),
    "heroku-key": (("hrku-",), r"HRKU-[A-Za-z0-9_-]{30,}"),
    "huggingface-token": (("hf_",), r"hf_[A-Za-z0-9]{30,}"),
    "linear-key": (("lin_api_",), r"lin_api_[A-Za-z0-9]{32,}"),
    "mailgun-key": (("key-",), r"key-[0-9a-f]{32}"),
    "newrelic-key": (
        ("nrak-", "nrii-", "nrjs-", "nrra-", "nrsp-"),
        r"NR(?:AK|II|JS|RA|SP)-[A-Za-z0-9_-]{20,}",
    ),
    "notion-token": (("ntn_",), r"ntn_[A-Za-z0-9]{40,}"),
    "npm-token": (("npm_",), r"npm_[A-Za-z0-9]{36}"),
    "nvidia-key": (("nvapi-",), r"nvapi-[A-Za-z0-9_-]{40,}"),
    "perplexity-key": (("pplx-",), r"pplx-[A-Za-z0-9]{40,}"),
    "planetscale-token": (("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9=._-]{30,}"),
    "postman-key": (("pmak-",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    "pulumi-token": (("pul-",), r"pul-[0-9a-f]{40}"),
    "pypi-token": (("pypi-",), r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    "replicate-token": (("r8_",), r"r8_[A-Za-z0-9]{36,}"),
    "rubygems-key": (("rubygems_",), r"rubygems_[0-9a-f]{48}"),
    "sendgrid-key": (("sg.",), r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    "sentry-token": (("sntry",), r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    "shopify-token": (
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    ),
    "square-token": (("sq0atp-", "sq0csp-"), r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}"),
    "stripe-key": (("k_test_", "k_live_", "k_prod_"), r"[rs]k_(?:test|live|prod)_[A-Za-z0-9]{10,}"),
    "stripe-webhook-secret": (("whsec_",), r"whsec_[A-Za-z0-9+/=]{24,}"),
    "supabase-token": (("sbp_",), r"sbp_[0-9a-f]{40}"),
    "tailscale-key": (("tskey-",), r"tskey-[a-z]+-[A-Za-z0-9_-]{10,}"),
    "vault-token": (("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    "xai-key": (("xai-",), r"xai-[A-Za-z0-9]{60,}"),
    # Those that share a beginning with others come last.
    "github-token": (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,}"),
    "slack-token": (
        ("xoxa", "xoxb", "xoxe", "xoxo", "xoxp", "xoxr", "xoxs"),
        r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}",
    ),
    "slack-app-token": (("xapp-",), r"xapp-[0-9]-[A-Z0-9]+-[0-9]+-[0-9a-f]{20,}"),
    "twilio-key": (("twilio",), r"(?<![A-Za-z0-9])SK[0-9a-f]{32}"),
    "sk-key": (("sk-",), r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,}"),
    "aws-access-key-id": (
        ("akia", "asia", "abia", "acca"),
        r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}",
    ),
}

# Those that no mark of their own gives away: by their shape, or by what stands before them.
_NAMED = r"(?:passw(?:or)?d|pwd|secret|token|api[_-]?key|access[_-]?key|auth[_-]?key)"
_BECOMES = r"""\\?["']?\s{0,5}(?:=>|:=|=|:)\s{0,5}\\?["']?"""
_MIXED = r"(?=[A-Za-z_+/=.~-]{0,200}[0-9])(?=[0-9_+/=.~-]{0,200}[A-Za-z])"
_OTHERS = (
    Rule(
        "private-key",
        re.compile(
            r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r".*?(?:-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
        ("private key",),
    ),
    Rule(
        "jwt",
        # A header is short. Without a bound, each `eyJ` in a long run of letters would read to the
        # end of the run.
        re.compile(r"eyJ[A-Za-z0-9_-]{10,8000}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]*"),
        ("eyj",),
    ),
    Rule(
        "slack-webhook",
        re.compile(
            r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/_]{20,})"
        ),
        ("hooks.slack.com",),
    ),
    Rule(
        "discord-webhook",
        re.compile(r"discord(?:app)?\.com/api/webhooks/(?P<secret>[0-9]+/[A-Za-z0-9_-]{20,})"),
        ("/api/webhooks/",),
    ),
    Rule(
        "telegram-token",
        re.compile(r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
        (":aa",),
    ),
    Rule(
        "mailchimp-key",
        re.compile(r"[0-9a-f]{32}-us[0-9]{1,2}"),
        ("-us",),
    ),
    Rule(
        "airtable-token",
        re.compile(r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
        ("airtable",),
    ),
    Rule(
        "terraform-token",
        re.compile(r"[A-Za-z0-9]{0,14}\.atlasv1\.[A-Za-z0-9_=-]{50,}"),
        (".atlasv1.",),
    ),
    Rule(
        "azure-account-key",
        re.compile(r"AccountKey=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})", re.I | re.A),
        ("accountkey=",),
    ),
    Rule(
        "aws-secret-access-key",
        re.compile(
            rf"aws_?.{{0,20}}?(?:secret|access)[A-Za-z0-9_ -]{{0,20}}{_BECOMES}"
            r"(?P<secret>[A-Za-z0-9/+]{40,})",
            re.I | re.A,
        ),
        ("aws",),
    ),
    Rule(
        "authorization",
        re.compile(
            rf"authorization{_BECOMES}(?:bearer|basic|token|bot)\s{{1,3}}"
            r"(?P<secret>[A-Za-z0-9._~+/=-]{8,})",
            re.I | re.A,
        ),
        ("authorization",),
    ),
    Rule(
        "url-password",
        re.compile(r"://[^\s:/@\"'<>]{0,100}:(?P<secret>(?!\[redacted:)[^\s/@\"'<>]{3,200})@"),
        ("://",),
    ),
    Rule(
        "assigned-secret",
        re.compile(
            rf"{_NAMED}{_BECOMES}{_MIXED}(?P<secret>[A-Za-z0-9_+/=.~-]{{16,}})(?![\w(\[.])",
            re.I | re.A,
        ),
        (
            "passw",
            "pwd",
            "secret",
            "token",
            "apikey",
            "api_key",
            "api-key",
            "accesskey",
            "access_key",
            "access-key",
            "authkey",
            "auth_key",
            "auth-key",
        ),
    ),
)

RULES = (
    *(Rule(name, re.compile(pattern), keywords) for name, (keywords, pattern) in _TOKENS.items()),
    *_OTHERS,
)


def built_in(*more: Rule | re.Pattern[str] | str) -> Redaction:
    """The built-in rules, and more of the caller's."""
    return Redaction((*RULES, *more))

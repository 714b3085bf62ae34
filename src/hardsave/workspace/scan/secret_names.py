"""Names that look like secrets, and names of local data that nothing else holds. Pure."""

_SECRETS = frozenset(
    b".env .envrc id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk .netrc _netrc .pgpass"
    b" .my.cnf .pypirc .npmrc .yarnrc.yml .htpasswd .git-credentials .vault-token .dockercfg .boto"
    b" .s3cfg credentials secrets.json secrets.toml secrets.yaml secrets.yml kubeconfig"
    b" terraform.tfvars".split()
)
_SECRET_BEGINNINGS = (b".env.", b"credentials.")
_SECRET_ENDINGS = tuple(
    b".env .pem .key .p12 .pfx .jks .keystore .ppk .kdbx .p8 _credentials.json -credentials.json"
    b" .tfstate .ovpn".split()
)
_SECRET_KEYS = (b"client_secret", b"service-account", b"service_account")  # at the front of .json
# Local data and settings, which projects ignore and nothing else holds.
_LOCAL_ENDINGS = tuple(
    b".db .sqlite .sqlite3 .local.json .local.toml .local.yaml .local.yml".split()
)
# These show which settings there are, and are written to be shared.
_TEMPLATES = (b".env.example", b".env.sample", b".env.template", b".env.dist")


def looks_secret(name: bytes) -> bool:
    plain = name.lower()
    if plain in _TEMPLATES or plain.endswith(_TEMPLATES[0]):
        return False
    return (
        plain in _SECRETS
        or plain.startswith(_SECRET_BEGINNINGS)
        or plain.endswith(_SECRET_ENDINGS)
        or (plain.startswith(_SECRET_KEYS) and plain.endswith(b".json"))
    )


def is_worth_noting(name: bytes) -> bool:
    """Whether a file of this name is missed if it was ignored and is gone: a secret, a local
    setting, a local database."""
    return looks_secret(name) or name.lower().endswith(_LOCAL_ENDINGS)

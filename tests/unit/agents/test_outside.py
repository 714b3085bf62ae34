"""What a tool call reached beyond the files here."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.agents import outside
from hardsave.agents.outside import reached, shell

REACHES = {
    "git push": "git push",
    "git -C ../other push --force origin main": "git push",
    "/usr/bin/git -c user.name=x push": "git push",
    "gh pr create --title 'a b' --body x": "gh pr create",
    "gh pr merge 12 --squash": "gh pr merge",
    "gh release create v1.0": "gh release create",
    "gh api -X POST repos/a/b/issues": "gh api POST",
    "gh api repos/a/b/issues -f title=x": "gh api POST",
    "curl -X POST https://api.example.com/v1?key=secret": "curl -X POST api.example.com",
    "curl -sXDELETE http://localhost:8000/a": "curl -X DELETE localhost",
    "curl -d 'a=b' example.com/x": "curl -X POST example.com",
    "curl --json '{}' https://example.com": "curl -X POST example.com",
    "curl --data-binary @f --url https://example.com": "curl -X POST example.com",
    "curl -H 'A: b' -F file=@x https://user:pw@example.com/up": "curl -X POST example.com",
    "curl --request=put https://example.com": "curl -X PUT example.com",
    "wget --post-data='a=b' https://example.com/x": "wget POST example.com",
    "wget --method=DELETE https://example.com/x": "wget DELETE example.com",
    "http POST example.com/x a=b": "http POST example.com",
    "http example.com/x name=b": "http POST example.com",
    "pip install requests": "pip install",
    "python3 -m pip install -r requirements.txt": "pip install",
    "uv pip install --system requests": "uv pip install",
    "npm install -g typescript": "npm install",
    "npm --prefix web i": "npm i",
    "npm publish": "npm publish",
    "sudo apt-get -y install jq": "apt-get install",
    "apt install jq": "apt install",
    "brew install jq": "brew install",
    "cargo install ripgrep": "cargo install",
    "twine upload dist/*": "twine upload",
    "docker push registry.example.com/a:1": "docker push",
    "docker compose -f x.yaml up -d": "docker compose up",
    "kubectl -n prod apply -f x.yaml": "kubectl apply",
    "kubectl delete pod x": "kubectl delete",
    "kubectl rollout restart deploy/x": "kubectl rollout restart",
    "terraform apply -auto-approve": "terraform apply",
    "aws s3 cp a.txt s3://bucket/a.txt": "aws s3 cp",
    "aws --profile p ec2 terminate-instances --instance-ids i-1": "aws ec2 terminate-instances",
    "gcloud compute instances create x": "gcloud compute instances create",
    "ssh -i key deploy@example.com uptime": "ssh example.com",
    "scp a.txt deploy@example.com:/srv": "scp example.com",
    "rsync -av -e 'ssh -p 22' out/ example.com:/srv": "rsync example.com",
    "psql -h db -c 'delete from a'": "psql",
    "psql postgres://db/a -c 'select 1; drop table a'": "psql",
    "mysql -h db -e 'insert into a values (1)'": "mysql",
    "redis-cli -h db set a b": "redis-cli set",
    # behind other words
    "make && git push": "git push",
    "make; git push": "git push",
    "false || git push": "git push",
    "make\ngit push": "git push",
    "make & git push": "git push",
    "(cd x && git push)": "git push",
    "{ git push; }": "git push",
    "if make; then git push; fi": "git push",
    "for x in a b; do git push $x; done": "git push",
    "! git push": "git push",
    "echo x | xargs -n 1 git push origin": "git push",
    "GIT_SSH=x git push": "git push",
    "env -u A B=c git push": "git push",
    "sudo -u deploy git push": "git push",
    "timeout -k 5 30 git push": "git push",
    "nohup git push > log 2>&1 &": "git push",
    "time git push": "git push",
    "uv run --with x twine upload dist/*": "twine upload",
    "bash -c 'git push'": "git push",
    'bash -lc "cd x && git push"': "git push",
    "sh -ec 'sudo bash -c \"git push\"'": "git push",
    "bash <<'END'\nset -e\ngit push\nEND": "git push",
    "eval 'git push'": "git push",
    "x=$(git push 2>&1)": "git push",
    'echo "done: $(git push)"': "git push",
    "echo `git push`": "git push",
    "echo $( (cd x; git push) )": "git push",
    "diff <(curl -X POST example.com) x": "curl -X POST example.com",
    "git \\\n  push": "git push",
    "'git' \"push\"": "git push",
    "git push # --dry-run": "git push",
    "kubectl apply --dry-run=none -f x": "kubectl apply",
}

REACHES_NOTHING = [
    "",
    "ls -l",
    'echo "git push"',
    "echo 'x; git push'",
    "echo git push",
    "echo x \\; git push",
    "echo ';' git push",
    "git commit -m 'curl -X POST'",
    'git commit -m "a && git push"',
    "git commit -m \"$(cat <<'END'\nDo not git push\ngit push\nEND\n)\"",
    "cat > deploy.sh <<END\ngit push\nEND",
    "cat <<-END\n\tgit push\n\tEND\n",
    "# git push",
    "ls # && git push",
    "grep -r 'git push' .",
    "rg npm publish",
    "man git push",
    "which curl; command -v git push",
    "git push --dry-run",
    "git push -n",
    "git push --help",
    "git status; git fetch; git pull; git log push",
    "git stash push",
    "git stash pop",
    "gh pr view 12; gh pr list; gh api repos/a/b",
    "curl https://example.com",
    "curl -G -d q=x https://example.com",
    "curl -o POST https://example.com",
    "curl -H 'X-Method: POST' https://example.com",
    "wget https://example.com/x",
    "http example.com/x q==b",
    "http GET example.com/x",
    "pip list; pip show install",
    "pip install --dry-run x",
    "apt-get -s install x",
    "npm run install; npm test; npm ls",
    "docker ps; docker build .",
    "kubectl get pods; kubectl -n delete get pods",
    "kubectl apply --dry-run=client -f x",
    "terraform plan",
    "aws s3 ls; aws s3 cp s3://bucket/a .; aws ec2 describe-instances",
    "gcloud compute instances list; gcloud config set project x",
    "scp example.com:/srv/a .",
    "rsync -a a/ b/",
    "rsync -an a/ example.com:/srv --dry-run",
    "ssh-keygen -t ed25519",
    "psql -c 'select * from a'",
    "psql -l",
    "redis-cli get a",
    "bash deploy.sh",
    "python -m http.server",
    "> git push",
    "cat < git",
]


@pytest.mark.parametrize(("command", "phrase"), REACHES.items())
def test_an_effect_outside_is_recognised(command: str, phrase: str) -> None:
    assert reached("Bash", {"command": command}) == (phrase,)


@pytest.mark.parametrize("command", REACHES_NOTHING)
def test_what_only_reads_or_speaks_of_it_is_no_effect(command: str) -> None:
    assert reached("Bash", {"command": command}) == ()


@pytest.mark.parametrize(
    "given",
    [
        {"command": ["bash", "-lc", "git push"]},
        {"command": ["git", "push"]},
        {"command": "git push"},
        {"cmd": "git push", "workdir": "/x"},
        json.dumps({"command": ["git", "push"]}),
    ],
)
def test_a_command_may_be_words_or_a_text_or_written_as_json(given: Any) -> None:
    assert reached("shell", given) == ("git push",)


def test_words_of_a_list_are_no_shell_text() -> None:
    assert reached("shell", {"command": ["echo", "x;", "git", "push"]}) == ()


def test_a_patch_is_no_command() -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+x\ngit push\n*** End Patch"
    assert reached("apply_patch", {"command": patch}) == ()
    assert reached("shell", {"command": ["apply_patch", patch]}) == ()
    assert reached("apply_patch", patch) == ()


@pytest.mark.parametrize(
    ("tool", "phrases"),
    [
        ("mcp__github__create_issue", ("github create_issue",)),
        ("mcp__slack__slack_post_message", ("slack slack_post_message",)),
        ("mcp__linear__updateIssue", ("linear updateIssue",)),
        ("mcp__github__get_issue", ()),
        ("mcp__github__list-issues", ()),
        ("mcp__notion__notion_search", ()),
        ("mcp__linear__getIssue", ()),
        ("mcp__filesystem__write_file", ()),
        ("mcp__", ()),
        ("mcp__x", ()),
        ("Edit", ()),
        ("WebFetch", ()),
    ],
)
def test_a_tool_of_a_server_counts_unless_it_is_named_as_reading(
    tool: str, phrases: tuple[str, ...]
) -> None:
    assert reached(tool, {"command": ""}) == phrases


def test_each_effect_is_said_once_in_order_and_few_are_said() -> None:
    command = "git push; curl -d x a.example; git push --tags"
    assert reached("Bash", {"command": command}) == ("git push", "curl -X POST a.example")
    many = "; ".join(f"curl -d x {'a' * 300}{number}.example" for number in range(20))
    found = reached("Bash", {"command": many})
    assert all(len(each) <= outside.LONGEST for each in found)
    assert len(found) <= outside.MOST


@given(
    st.text(),
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["command", "cmd"]), inner),
        max_leaves=5,
    ),
)
def test_no_input_is_an_error(tool: str, given: Any) -> None:
    reached(tool, given)


@given(st.text(alphabet="git push curl-dX'\"`$()<>&|;#\\\n \tEOF{}=:@/[]."))
def test_no_command_is_an_error(command: str) -> None:
    reached("Bash", {"command": command})
    words = [word for each in shell.commands(command) for word in each.words]
    assert sum(map(len, words)) <= len(command)


@pytest.mark.parametrize("begin", ["$(", "`", "(", '"$(', "<<E\n", "sudo ", "bash -c '", "A=b "])
def test_a_text_may_be_of_any_size_and_depth(begin: str) -> None:
    reached("Bash", {"command": begin * 200_000 + "git push"})
    reached("Bash", {"command": [begin.strip()] * 200_000})

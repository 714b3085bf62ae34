"""What the model says to the agent that is killed: five tools at once, one alone, the end."""

from hardsave.runtime.scripted import Call, Reply, Script

PROMPT = "Make the three files, then pay"
ANSWER = "All done"

SCRIPT: Script = [
    Reply(
        "First the files",
        (
            Call("make", {"name": "a"}),
            Call("make", {"name": "b"}),
            Call("make", {"name": "c"}),
            Call("look", {}),
            Call("correct", {}),
        ),
        reasoning="They need files. All at once is best.",
    ),
    Reply("", (Call("pay", {"amount": 7}),), reasoning="Now the money."),
    Reply(ANSWER, reasoning="Nothing is left."),
]
TURNS = len(SCRIPT)
TOOLS = ("make a", "make b", "make c", "look", "correct", "pay 7")

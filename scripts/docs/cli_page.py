"""docs/cli.md: the help of every subcommand, as the program prints it."""

HEAD = '''# The command line

Made by `scripts/docs/make` from `--help`. Exit codes: 0, all as expected; 1, a failure; 2, bad usage or input, explained
in one line; 3, the run could not be judged (the backend did not start, or the run ended early).
'''


def page(help_texts):
    parts = [HEAD]
    for words in ((), *help_texts.all()):
        text = '\n'.join(line.rstrip() for line in help_texts.of(words).strip('\n').splitlines())
        parts.append(f'## {" ".join(("plumbline", *words))}\n\n```text\n{text}\n```\n')
    return '\n'.join(parts)

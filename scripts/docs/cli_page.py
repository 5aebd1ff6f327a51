"""docs/cli.md: the help of every subcommand, as the programs print it."""

HEAD = '''# The command line

Made by `scripts/docs/make` from `--help` of `plumbline` and, [below](#plumbline-case), of `plumbline-case`, the program of
the Python wheel. Exit codes of both: 0, all as expected; 1, a failure; 2, bad usage or input, explained in one line; 3, the
run could not be judged (the backend did not start, or the run ended early).
'''


def page(help_texts, of_wheel):
    parts = [HEAD]
    for name, of_program in ('plumbline', help_texts), ('plumbline-case', of_wheel):
        for words in ((), *of_program.all()):
            text = '\n'.join(line.rstrip() for line in of_program.of(words).strip('\n').splitlines())
            parts.append(f'## {" ".join((name, *words))}\n\n```text\n{text}\n```\n')
    return '\n'.join(parts)

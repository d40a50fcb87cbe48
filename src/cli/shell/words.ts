// A line of the REPL or of a script, taken apart as a POSIX shell would: 'single quotes' keep everything, "double
// quotes" allow \" and \\, a backslash outside takes the next character as it is, and # begins a comment at the start of a
// word. There are no variables, no globs and no pipes.

export class UnfinishedQuote extends Error {
  override readonly name: string = 'UnfinishedQuote'
}

/** Throws UnfinishedQuote when a quote is not closed or the line ends in a backslash. */
export function splitWords(line: string): string[] {
  const words: string[] = []
  let word: string | undefined
  let quote: '"' | "'" | undefined
  for (let i = 0; i < line.length; i++) {
    const c = line[i] as string
    if (quote !== undefined) {
      if (c === quote) quote = undefined
      else if (c === '\\' && quote === '"' && (line[i + 1] === '"' || line[i + 1] === '\\')) {
        word += line[++i] as string
      } else word += c
    } else if (c === '"' || c === "'") {
      quote = c
      word ??= ''
    } else if (c === '\\') {
      if (i + 1 === line.length) throw new UnfinishedQuote('the line ends in a backslash')
      word = (word ?? '') + (line[++i] as string)
    } else if (/\s/.test(c)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (c === '#' && word === undefined) {
      break
    } else word = (word ?? '') + c
  }
  if (quote !== undefined) throw new UnfinishedQuote(`a ${quote} is not closed`)
  if (word !== undefined) words.push(word)
  return words
}

/** The word so that `splitWords` gives it back. */
export function quoteWord(word: string): string {
  return /^[A-Za-z0-9_./:@,=+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

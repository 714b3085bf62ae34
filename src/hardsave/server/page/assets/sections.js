// A conversation folded by its prompts. Pure.

/** Where a conversation of `total` messages has prompts, from the checkpoints that led to it, the
 * oldest first: [{ start, count, prompt, number }]. */
export function sections(checkpoints, total) {
  let found = [];
  for (const { summary, description } of checkpoints) {
    const { messages, new_messages: fresh, prompt } = summary ?? {};
    if (fresh < 0) found = []; // it was written anew: its messages have other numbers since
    if (prompt && isAsked(description)) found.push({ start: messages, prompt });
    else if (prompt && fresh > 0) found.push({ start: messages - fresh, prompt });
  }
  found = found.filter(({ start }, at) => start < total && (!at || start > found[at - 1].start));
  if (!found.length) return [];
  found.forEach((each, at) => Object.assign(each, { number: at + 1 }));
  if (found[0].start > 0) found.unshift({ start: 0, prompt: "" });
  return found.map((each, at) => ({ ...each, count: (found[at + 1]?.start ?? total) - each.start }));
}

/** Whether a hook has saved this before the prompt was among the messages. */
function isAsked(description = "") {
  return /^before: |; before: /.test(description);
}

/** Which row shows which message, where some sections show their prompt alone. */
export class Folded {
  constructor(found, total, isFolded) {
    this.sections = found.length ? found : [{ start: 0, count: total, prompt: null }];
    this.isPlain = !found.length;
    this.isFolded = isFolded;
    this.tops = []; // the row that each section begins at
    this.length = 0;
    for (const section of this.sections) {
      this.tops.push(this.length);
      this.length += this.isShut(section) ? 1 : section.count;
    }
  }

  isShut(section) {
    return !this.isPlain && this.isFolded(section.start);
  }

  /** { number, section, isShut } of a row; `section` only where it begins. */
  at(row) {
    const place = last(this.tops, row);
    const section = this.sections[place];
    const number = section.start + row - this.tops[place];
    const isFirst = !this.isPlain && number === section.start;
    return { number, section: isFirst ? section : null, isShut: isFirst && this.isShut(section) };
  }

  row(number) {
    const place = last(this.sections.map((each) => each.start), number);
    const section = this.sections[place];
    return this.tops[place] + (this.isShut(section) ? 0 : number - section.start);
  }

  sectionOf(number) {
    return this.sections[last(this.sections.map((each) => each.start), number)];
  }
}

/** The place of the last of `sorted` that is not above a value. */
function last(sorted, value) {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (sorted[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

// Written by python -m tools.payload from dpviz/report/tables/payload.py.

/** All data that the comparison figure needs for one table and setting. */
export interface Payload {
  version: number;
  table: TableFacts;
  /** the current epsilon */
  now: number;
  truth: Truth;
  labels: LabelCodes;
  limits: BoardLimits;
  palette: Palette;
  levels: Level[];
  chance: Chance;
  /** what pictures of the rows carry, or None where the rows are public */
  ribbon: string | null;
  /** whether what is paid for may be shown to anybody */
  publishable: boolean;
  /** one for each mechanism, in the order of the board */
  columns: BoardColumn[];
  /** every epsilon that frames are planned for, ascending */
  epsilons: number[];
  /** the same, written */
  texts: string[];
  /** of an axis of epsilon: value, text, whether it is a power of ten */
  ticks: [number, string, boolean][];
  /** where an axis goes on at either end: value and text */
  beyond: [[number, string] | null, [number, string] | null];
  /** how many epsilons a table gets for which draws are cheap; None: no fewer are shown */
  steps: number | null;
  /** what the answer must not be read without */
  caution: string | null;
  /** recovery expected without a draw, by mechanism, at each epsilon */
  predicted: Record<string, ([number, string, string] | null)[]>;
  /** from where 90 % is recovered, in words */
  least: string | null;
  /** those that are computed so far */
  frames: Frame[];
  /** pictures of the first draws, by mechanism */
  draws?: Record<string, string[]> | null;
  /** which dots of a picture of rows a lesson follows, the last of them by name */
  marked?: number[];
}

/** Facts about the figure's table and setting. */
export interface TableFacts {
  name: string;
  n: number;
  d: number;
  k: number;
  delta: number;
  relation: string;
  /** releases drawn of each mechanism */
  draws: number;
}

/** Results of exact PCA. */
export interface Truth {
  /** all d, descending */
  eigenvalues: number[];
  /** int16 pairs in units of limits.scale/32767; numbers alone where k = 1 */
  picture: string;
  /** float32 in -1 to 1 where k = 1, which keep points apart and mean nothing */
  heights: string | null;
  /** the largest eigenvalue, written */
  text: string;
}

/** Labels of the rows in a projection; None without labels. */
export interface LabelCodes {
  name: string | null;
  /** names of kinds; None where labels are numbers */
  kinds: string[] | null;
  marks: string[] | null;
  /** uint8, a kind's place or a number's share of 255 */
  codes: string | null;
  /** least and largest number, written */
  ends: [string, string] | null;
  /** whether a picture that is published may tell kinds by name */
  public: boolean;
}

/** Limits of axes that all columns share. */
export interface BoardLimits {
  /** half the width and the height of a picture */
  picture: [number, number];
  /** what 32767 stands for in a picture */
  scale: number;
  spectrum: SpectrumLimits;
  /** the farthest that two spaces can lie apart */
  distance: number;
  /** what the two lines of a spectrum mean */
  lines: string;
}

/** Colours of labels. */
export interface Palette {
  /** a colour for each kind, in turn */
  labels: string[];
  /** red, green and blue from the least number to the largest */
  ramp: [number, number, number][];
}

/** Values of a random subspace. */
export interface Chance {
  /** captured of the optimum, written */
  share: string;
  distance: number;
  /** the distance, written */
  text: string;
}

/** The axes of a spectrum: one for the first components, one for all components. */
export interface SpectrumLimits {
  first: Heights;
  all: Heights;
}

/** A level of recovery, drawn as a line. */
export interface Level {
  share: number;
  text: string;
  /** whether it is a goal and no end of the scale */
  dotted: boolean;
}

/** Content of the column head of a mechanism. */
export interface BoardColumn {
  key: string;
  label: string;
  summary: string;
  paper: string;
  guarantee: string;
  release: string;
  /** whether its draws are other ones at each epsilon */
  redraws: boolean;
  /** as #rrggbb */
  colour: string;
}

/** The data of the figure at one epsilon. */
export interface Frame {
  epsilon: number;
  /** how many it holds */
  draws: number;
  /** by mechanism */
  cells: Record<string, BoardCell>;
  /** why a mechanism cannot run, by mechanism */
  skipped: Record<string, string>;
  answer: Headline;
  /** by mechanism, and of the exact one, A, B and C of a straight line Ax + By = C in the projection, if a lesson draws a line */
  lines?: Record<string, number[]>;
  /** by mechanism, how many components are found and how many variances lie above the threshold, if a lesson counts both */
  counted?: Record<string, number[]>;
}

/** An axis of variances. */
export interface Heights {
  /** components across */
  count: number;
  low: number;
  high: number;
  /** up to where it is linear; logarithmic beyond. None: linear all over */
  linear: number | null;
  /** levels and their texts */
  marks: [number, string][];
}

/** The answer at one epsilon, in words. */
export interface Headline {
  /** who recovers most, and who is tied */
  recovery: string;
  /** what a guesser gains from that release; None where no claim holds */
  risk: string | null;
}

/** Results of one mechanism at one epsilon. */
export interface BoardCell {
  status: ClaimFacts;
  /** mean, the central 95 % of the draws and the mean's standard error, 0 for a single release; None if k = d */
  recovery: [number, number, number, number] | null;
  /** the mean recovery as released, where recovery is after post-processing */
  before: number | null;
  /** one a draw */
  distances: number[];
  /** median and the central 95 % of the draws */
  distance: [number, number, number];
  spectrum: Spectrum;
  /** of the noise's own spectrum */
  edges: [number, number] | null;
  /** variance below which the noise hides a lone component */
  threshold: number | null;
  /** as truth.picture, of one draw */
  picture: string;
  /** a picture with its directions at this epsilon in all; None where there is none */
  published: Published | null;
  /** float32, the noisy eigenvalues expected without a draw, where they are shown */
  predicted?: string;
  texts: Texts;
}

/** Facts about a claim at one epsilon. */
export interface ClaimFacts {
  verdict: string;
  mark: string;
  words: string;
  evidence: string;
  /** whether a claim is made that stands */
  counts: boolean;
  /** the verdict, or "false" for a claim that an exact account or an attack breaks */
  state: string;
}

/** Eigenvalues of simulated releases. */
export interface Spectrum {
  /** whether they are published, or variances along published directions */
  released: boolean;
  /** how many are sent */
  count: number;
  /** the median of the first, written */
  text: string;
  /** float32: count medians, as many least ones, as many largest ones */
  lines: string;
}

/** Readable texts on one mechanism at one epsilon. */
export interface Texts {
  recovery: string;
  words: string;
  /** the words, that the claim does not count where it does not, and how far the aim leads */
  said: string;
  /** the least and the most that a draw recovers */
  range: string[];
  /** what was recovered before post-processing; empty where nothing was done */
  before: string;
  /** what it aims at instead of A and how far that leads, empty where that is all the way */
  aim: string;
  /** what a guesser gains from its release */
  risk: string;
  distance: string;
  /** lines */
  claim: [string, string][];
  /** lines */
  found: [string, string][];
}

/** Points that stand for the rows, from released numbers alone. */
export interface Published {
  /** int16 pairs in units of reach/32767 along each axis; numbers alone where k = 1 */
  places: string;
  /** half the width and the height of the frame; the width alone where k = 1 */
  reach: number[];
  /** uint8, the place of the label that a point's cell shows, 255 where noise hides which */
  codes: string | null;
  /** what is to be read beside it, in lines */
  said: string[];
  /** int16 pairs in units of 1/32767, the share of the variance of each component and half a bar of 95 % about it, then texts of the first shares; empty if noise hides them */
  scree: [string, string[]];
}

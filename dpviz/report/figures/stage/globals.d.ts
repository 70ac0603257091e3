// Scripts that stand before the stage's on a page.
declare const DpvizBoard: typeof import("../board/board.js");
declare const DpvizNumbers: Record<"numeral" | "parseable" | "percent" | "ofHundred", (value: number, digits?: number) => string>;
declare const dpvizPerson: typeof import("../person/person.js").dpvizPerson;

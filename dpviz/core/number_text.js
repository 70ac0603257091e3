// These are the rules of number_text.py, for numbers in the browser; a test compares both.
const DpvizNumbers = (() => {
  "use strict";
  const CERTAIN = 1 - 1e-9;

  function parseable(value, digits = 2) {
    if (!value) return Number.isNaN(value) ? "nan" : "0";
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    const rounded = Number(value.toPrecision(digits));
    const [mantissa, power] = rounded.toExponential().split("e");
    return power < -4 || power >= 6 ? `${mantissa}e${Number(power)}` : String(rounded);
  }

  const numeral = (value, digits) =>
    parseable(value, digits).replace(/^(-?\d{2,3})(\d{3})(?!\d)/, "$1,$2");

  // Write zero without a minus sign.
  function decimals(value, places) {
    return value.toFixed(places).replace(/^-(?=0(?:\.0+)?$)/, "");
  }

  // A no-break space keeps the number and its per-cent sign on one line.
  const perCent = (number) => `${number}\u00a0%`;

  function percent(share) {
    const value = 100 * share;
    if (value > -0.05 && value <= 0) return perCent("0");
    if (value > 0 && value < 0.1) return perCent("< 0.1");
    if (value > 99.9 && share < CERTAIN) return perCent("> 99.9");
    const digits = Math.abs(value) < 1 || (value > 99 && value <= 99.9) ? 1 : 0;
    return perCent(decimals(value, digits));
  }

  function ofHundred(share) {
    if (share > 0 && share < 0.005) return "less than 1";
    if (share > 0.995 && share < 1) return "more than 99";
    return decimals(100 * share, 0);
  }

  return { numeral, parseable, percent, ofHundred };
})();

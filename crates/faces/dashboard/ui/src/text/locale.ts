/** The language of numbers and times. */
export const locale = "en";

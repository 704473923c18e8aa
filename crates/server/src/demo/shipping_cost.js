// What a parcel costs in cents: the first two kilograms, and each further one.
const ZONES = {
  Spain: { first: 490, further: 90, days: 2 },
  Europe: { first: 990, further: 240, days: 4 },
  world: { first: 2490, further: 790, days: 9 },
};
const EUROPE = ["AT", "BE", "CH", "CZ", "DE", "DK", "FI", "FR", "GB", "GR", "HU", "IE", "IT", "LU", "NL", "NO", "PL", "PT", "SE", "SK"];

export default function (ctx) {
  const { country, kg } = ctx.input;
  const zone = country === "ES" ? "Spain" : EUROPE.includes(country) ? "Europe" : "world";
  const { first, further, days } = ZONES[zone];
  const cents = first + Math.ceil(Math.max(kg - 2, 0)) * further;
  ctx.log("zone", zone);
  return { euros: cents / 100, zone, days };
}

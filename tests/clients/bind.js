// Binds a value of each type with pg or postgres.js, to a question over a public table with three rows.
const { Client } = require("pg");
const postgres = require("postgres");

const where = { host: "127.0.0.1", port: Number(process.env.SECANT_PORT), user: "ana", database: "shop", password: process.env.PGPASSWORD, ssl: { rejectUnauthorized: false } };
const moment = new Date(2025, 2, 1, 8, 30, 0, 250);
const checks = [
  ["date", "DATE '2025-03-01' = $1", 3, new Date(2025, 2, 1)],
  ["moment", "TIMESTAMP '2025-03-01 08:30:00.25' = $1", 3, moment],
  ["text of a date", "DATE '2025-03-01' = $1", 3, "2025-03-01"],
  ["whole number", "people = $1", 1, 95000],
  ["big number", "people = $1", 1, 95000n],
  ["fraction", "0.1e0 = $1", 3, 0.1],
  ["truth", "(people > 5) = $1", 3, true],
  ["text", "country = $1", 1, "LV"],
  ["null", "people = $1", 0, null],
  ["list of texts", "country = ANY($1)", 2, ["LV", "EE"]],
  ["list of numbers", "people = ANY($1)", 1, [95000, 3]],
];

async function asked(ask) {
  for (const [name, condition, expected, value] of checks) {
    try {
      const found = await ask(`SELECT count(*) AS n FROM towns WHERE ${condition}`, value);
      console.log(Number(found) === expected ? `read ${name}` : `misread ${name} ${found}`);
    } catch (error) {
      console.log(`failed ${name} ${error.message}`);
    }
  }
}

async function main() {
  if (process.argv[2] === "pg") {
    const client = new Client(where);
    await client.connect();
    await asked(async (text, value) => (await client.query(text, [value])).rows[0].n);
    await client.end();
  } else {
    const sql = postgres({ ...where, onnotice: () => {}, max: 1 });
    await asked(async (text, value) => (await sql.unsafe(text, [value]))[0].n);
    await sql.end();
  }
}

main().catch((error) => { console.error(error); process.exit(1); });

// Asks at the port with pg and with postgres.js: a question with a parameter, and a refusal.
const { Client } = require("pg");
const postgres = require("postgres");

const text = "SELECT status, count(*) AS n FROM orders WHERE quantity >= $1 GROUP BY status ORDER BY status";
const where = { host: "127.0.0.1", port: Number(process.env.SECANT_PORT), user: "ana", database: "shop" };

async function withPg() {
  const client = new Client({ ...where, password: process.env.PGPASSWORD, options: "-csecant.epsilon=50", ssl: { rejectUnauthorized: false } });
  await client.connect();
  const found = await client.query({ name: "asked", text, values: [2] });
  for (const row of found.rows) console.log(`pg row ${row.status} ${row.n}`);
  try {
    await client.query("SELECT id FROM customers");
  } catch (refused) {
    console.log(`pg refused ${refused.code}`);
  }
  await client.end();
}

async function withPostgresJs() {
  const sql = postgres({ ...where, password: process.env.PGPASSWORD, ssl: { rejectUnauthorized: false }, onnotice: () => {}, connection: { "secant.epsilon": "50" }, max: 1 });
  const least = 2;
  for await (const rows of sql`SELECT status, count(*) AS n FROM orders WHERE quantity >= ${least} GROUP BY status ORDER BY status`.cursor(2)) {
    for (const row of rows) console.log(`postgres.js row ${row.status} ${row.n}`);
  }
  await sql`SELECT id FROM customers`.catch((refused) => console.log(`postgres.js refused ${refused.code}`));
  await sql.end();
}

withPg().then(withPostgresJs).catch((error) => { console.error(error); process.exit(1); });

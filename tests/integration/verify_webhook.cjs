// Verifies a delivery with the package that receivers use: node verify_webhook.cjs FOLDER SECRET HEADERS BODY, where
// FOLDER holds node_modules. Prints "ok"; throws otherwise.
const { createRequire } = require("node:module");
const [folder, secret, headers, body] = process.argv.slice(2);
const { Webhook } = createRequire(folder + "/")("standardwebhooks");
new Webhook(secret).verify(body, JSON.parse(headers));
console.log("ok");

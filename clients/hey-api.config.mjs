export default {
  input: process.env.CONTRACT,
  output: { path: "generated/hey-api", importFileExtension: ".js" }, // Node.js wants the names of files
  plugins: ["@hey-api/typescript", "@hey-api/sdk", "@hey-api/client-fetch"],
};

// SPDX-License-Identifier: MIT
// kubernetes.mjs MODELS CEL: objects as a JSON array on standard input, against the models of @kubernetes/client-node in the
// folder MODELS, which are generated from the API's OpenAPI. A member that the API does not know, a required one that is
// missing and a value of another type are said, a line each. Expressions of CEL are parsed with @bufbuild/cel, module CEL.
import { readFileSync } from 'node:fs';

const [models, celModule] = process.argv.slice(2);
const { parse } = await import(celModule);
let wrong = 0;

function say(path, what) {
	console.log(`${path}: ${what}`);
	wrong++;
}

// "apps/v1", "DaemonSet" -> V1DaemonSet
function modelOf(apiVersion, kind) {
	const version = apiVersion.split('/').pop();
	return version[0].toUpperCase() + version.slice(1) + kind;
}

async function load(name) {
	return (await import(`${models}/${name}.js`))[name];
}

function requiredOf(name) {
	const text = readFileSync(`${models}/${name}.d.ts`, 'utf8');
	return [...text.matchAll(/^    '(\w+)': /gm)].map((found) => found[1]);
}

async function checkObject(path, value, name) {
	if (typeof value !== 'object' || value === null || Array.isArray(value)) {
		say(path, 'is no object');
		return;
	}
	const rows = (await load(name)).getAttributeTypeMap();
	for (const key of Object.keys(value)) {
		const row = rows.find((r) => r.baseName === key);
		if (row)
			await check(`${path}.${key}`, value[key], row.type);
		else
			say(`${path}.${key}`, `${name} has no such member`);
	}
	for (const key of requiredOf(name)) {
		const row = rows.find((r) => r.name === key);
		if (!(row.baseName in value))
			say(path, `${row.baseName} is missing`);
	}
}

async function check(path, value, type) {
	const array = type.match(/^Array<(.*)>$/), map = type.match(/^\{ \[key: string\]: (.*); \}$/);

	if (array) {
		if (!Array.isArray(value))
			say(path, 'is no array');
		else
			for (const [i, one] of value.entries())
				await check(`${path}[${i}]`, one, array[1]);
	} else if (map) {
		for (const key of Object.keys(value))
			await check(`${path}.${key}`, value[key], map[1]);
	} else if (['string', 'number', 'boolean'].includes(type)) {
		if (typeof value !== type)
			say(path, `is no ${type}`);
		else if (path.endsWith('.expression'))
			checkExpression(path, value);
	} else if (/^V\d/.test(type)) {
		await checkObject(path, value, type);
	}
}

function checkExpression(path, text) {
	try {
		parse(text);
	} catch (error) {
		say(path, `is no CEL: ${error.message}`);
	}
}

for (const object of JSON.parse(readFileSync(0, 'utf8')))
	await checkObject(object.metadata.name, object, modelOf(object.apiVersion, object.kind));
process.exit(wrong ? 1 : 0);

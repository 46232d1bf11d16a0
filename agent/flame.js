/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Zoom and search of a flame graph. Each frame is a <g> in #frames: a <title>, a <rect>, a <text>. */
(function () {
"use strict";
/* SLACK: numbers in the file have three digits; no frame is narrower than 0.01. */
var GAP = 10, CHAR = 7, SLACK = 0.004, root = document.documentElement, frames = [], word = "";
var full = Number(root.getAttribute("width")) - 2 * GAP;

function id(name) {
	return document.getElementById(name);
}

function collect() {
	var all = id("frames").children;
	for (var i = 0; i < all.length; i++) {
		var rect = all[i].querySelector("rect"), title = all[i].querySelector("title").textContent;
		frames.push({
			g: all[i], rect: rect, text: all[i].querySelector("text"), title: title,
			name: title.slice(0, title.lastIndexOf(" (")),
			x: Number(rect.getAttribute("x")), w: Number(rect.getAttribute("width")),
			y: Number(rect.getAttribute("y")), fill: rect.getAttribute("fill")
		});
	}
}

function label(f, width) {
	var fit = Math.floor((width - 6) / CHAR);
	if (fit < 3)
		return "";
	return f.name.length <= fit ? f.name : f.name.slice(0, fit - 2) + "..";
}

function place(f, x, width, faded) {
	f.g.style.display = "";
	f.g.style.opacity = faded ? "0.5" : "";
	f.rect.setAttribute("x", x);
	f.rect.setAttribute("width", width);
	f.text.setAttribute("x", x + 3);
	f.text.textContent = label(f, width);
}

/* Its callers stay, as wide as the picture; what it calls is scaled; the rest goes. */
function zoom(to) {
	var scale = full / to.w;
	frames.forEach(function (f) {
		if (f.y > to.y && f.x <= to.x + SLACK && f.x + f.w >= to.x + to.w - SLACK)
			place(f, GAP, full, true);
		else if (f.y <= to.y && f.x >= to.x - SLACK && f.x + f.w <= to.x + to.w + SLACK)
			place(f, GAP + (f.x - to.x) * scale, f.w * scale, false);
		else
			f.g.style.display = "none";
	});
	id("reset").style.visibility = to === frames[0] ? "hidden" : "visible";
}

function matcher(text) {
	try {
		var re = new RegExp(text);
		return function (name) { return re.test(name); };
	} catch (e) {
		return function (name) { return name.indexOf(text) >= 0; };
	}
}

/* What is matched twice on one stack counts once: the widths of the outermost ones. */
function search(text) {
	var match = matcher(text), found = [], sum = 0, end = -1;
	word = text;
	frames.forEach(function (f, i) {
		var hit = text !== "" && i > 0 && match(f.name);
		f.rect.setAttribute("fill", hit ? "#c060e0" : f.fill);
		if (hit)
			found.push(f);
	});
	found.sort(function (a, b) { return a.x - b.x || b.w - a.w; });
	found.forEach(function (f) {
		if (f.x < end - SLACK)
			return;
		sum += f.w;
		end = f.x + f.w;
	});
	id("matched").textContent = text === "" ? "" :
		"matched: " + (100 * sum / full).toFixed(1) + " %";
	id("search").textContent = text === "" ? "Search" : "Clear search";
}

function ask() {
	if (word !== "") {
		search("");
		return;
	}
	search(window.prompt("Functions to find (a regular expression):", "") || "");
}

function frame_of(target) {
	while (target && target !== root && target.parentNode !== id("frames"))
		target = target.parentNode;
	for (var i = 0; i < frames.length; i++)
		if (frames[i].g === target)
			return frames[i];
	return null;
}

window.addEventListener("load", function () {
	collect();
	if (!frames.length)
		return;
	id("search").style.visibility = "visible";
	id("search").addEventListener("click", ask);
	id("reset").addEventListener("click", function () { zoom(frames[0]); });
	id("frames").addEventListener("click", function (e) {
		var f = frame_of(e.target);
		if (f)
			zoom(f);
	});
	id("frames").addEventListener("mouseover", function (e) {
		var f = frame_of(e.target);
		id("details").textContent = f ? f.title : "";
	});
	window.addEventListener("keydown", function (e) {
		if (e.key === "F3" || (e.ctrlKey && e.key === "f")) {
			e.preventDefault();
			ask();
		}
	});
});
})();

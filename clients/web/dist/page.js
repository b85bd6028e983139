document.getElementById("app").textContent = "treelined";

// A placeholder until the page is built: the text for readers without script stays.
"use strict";

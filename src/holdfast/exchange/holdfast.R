# Read a release of holdfast with base R: figures with intervals, what is promised, what every column is.
#
#   source("holdfast.R")
#   release <- holdfast_read("out")
#   release                       what it is and what it promises
#   release$tables$table          a data frame: labels as texts, value, low, high
#   holdfast_promise(release)     every statement that holds, best first
#   holdfast_rows(release, borough = "North")
#
# Nothing beyond base R is needed. The certificate is JSON; a small reader of it stands at the end of this file.

holdfast_read <- function(folder) {
  path <- file.path(folder, "certificate.json")
  if (!file.exists(path)) stop(folder, " holds no certificate.json: name the folder of a release", call. = FALSE)
  certificate <- holdfast_json(path)
  if (!identical(certificate$schema, "holdfast-certificate-1") && !grepl("^holdfast-certificate-", certificate$schema))
    stop(path, " is not a certificate of holdfast", call. = FALSE)
  tables <- list()
  for (table in certificate$tables) {
    names_of <- unlist(table$columns)
    file <- file.path(folder, table$csv)
    files <- if (dir.exists(file)) sort(list.files(file, full.names = TRUE)) else file
    found <- do.call(rbind, lapply(files, utils::read.csv,
      colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8"
    ))
    if (dir.exists(file)) {
      found <- found[order(as.numeric(found$row)), names(found) != "row"]
      rownames(found) <- NULL
    }
    labels <- paste0(unlist(table$labels), "_label", recycle0 = TRUE)
    for (name in setdiff(names(found), c(names_of, labels))) found[[name]] <- as.numeric(found[[name]])
    if (nrow(found) != table$rows)
      stop(table$csv, " has ", nrow(found), " rows where ", table$rows, " are certified: run holdfast verify", call. = FALSE)
    attr(found, "confidence") <- table$interval$confidence
    attr(found, "intervals") <- table$interval$sentence
    tables[[table$name]] <- found
  }
  structure(
    list(title = certificate$title, tables = tables, certificate = certificate, folder = folder),
    class = "holdfast_release"
  )
}

holdfast_promise <- function(release) {
  rows <- lapply(release$certificate$statements, function(each) {
    data.frame(
      epsilon = .number(each$epsilon), delta = .number(each$delta), rho = .number(each$rho), mu = .number(each$mu),
      neighbours = each$neighbours$kind, records = each$neighbours$records, scope = each$scope,
      status = each$status, because = each$because, stringsAsFactors = FALSE
    )
  })
  do.call(rbind, rows)
}

holdfast_unprotected <- function(release) unlist(release$certificate$unprotected)

holdfast_rows <- function(release, ..., table = 1) {
  found <- release$tables[[table]]
  wanted <- list(...)
  for (name in names(wanted)) {
    if (!name %in% names(found)) stop("there is no column ", name, call. = FALSE)
    found <- found[!is.na(found[[name]]) & found[[name]] %in% wanted[[name]], , drop = FALSE]
  }
  found
}

print.holdfast_release <- function(x, ...) {
  cat("Release:", x$title, "\n")
  promise <- holdfast_promise(x)[1, ]
  said <- c(
    if (!is.na(promise$epsilon)) paste0("epsilon = ", promise$epsilon),
    if (!is.na(promise$epsilon) && promise$delta > 0) paste0("delta = ", promise$delta),
    if (!is.na(promise$rho)) paste0("rho = ", promise$rho), if (!is.na(promise$mu)) paste0("mu = ", promise$mu)
  )
  cat("Promise: ", paste(said, collapse = ", "), ", for ", promise$neighbours, " of ", promise$records, " record(s), ",
      "scope ", promise$scope, ", ", promise$status, "\n", sep = "")
  for (words in holdfast_unprotected(x)) cat("Not protected:", words, "\n")
  for (name in names(x$tables)) cat("Table ", name, ": ", nrow(x$tables[[name]]), " figures\n", sep = "")
  invisible(x)
}

.number <- function(value) {
  if (is.null(value)) return(NA_real_)
  if (is.character(value)) return(if (value == "inf") Inf else as.numeric(value))
  as.numeric(value)
}

# --- JSON in base R: enough for certificates and data packages -------------------------------------------------------

holdfast_json <- function(path) {
  text <- paste(readLines(path, encoding = "UTF-8", warn = FALSE), collapse = "\n")
  # Texts, numbers, words and signs, one after the other; what is between them is space.
  pattern <- '"(?:[^"\\\\]|\\\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null|[][{}:,]'
  tokens <- regmatches(text, gregexpr(pattern, text, perl = TRUE))[[1]]
  at <- 0L
  following <- function() {
    at <<- at + 1L
    tokens[at]
  }
  value <- function(token) {
    if (token == "{") {
      found <- list()
      token <- following()
      while (token != "}") {
        if (token == ",") token <- following()
        name <- .json_text(token)
        following() # the colon
        one <- value(following())
        if (is.null(one)) found[name] <- list(NULL) else found[[name]] <- one
        token <- following()
      }
      return(found)
    }
    if (token == "[") {
      found <- list()
      token <- following()
      while (token != "]") {
        if (token == ",") token <- following()
        found <- c(found, list(value(token)))
        token <- following()
      }
      return(found)
    }
    if (substr(token, 1, 1) == '"') return(.json_text(token))
    switch(token, true = TRUE, false = FALSE, null = NULL, as.numeric(token))
  }
  value(following())
}

.json_text <- function(token) {
  text <- substr(token, 2, nchar(token) - 1)
  if (!grepl("\\", text, fixed = TRUE)) return(text)
  parts <- regmatches(text, gregexpr("\\\\u[0-9a-fA-F]{4}|\\\\.|[^\\\\]+", text, perl = TRUE))[[1]]
  plain <- c("\\n" = "\n", "\\t" = "\t", "\\r" = "\r", "\\b" = "\b", "\\f" = "\f")
  made <- vapply(parts, function(part) {
    if (substr(part, 1, 1) != "\\") return(part)
    if (substr(part, 2, 2) == "u") return(intToUtf8(strtoi(substr(part, 3, 6), 16L)))
    if (part %in% names(plain)) return(plain[[part]])
    substr(part, 2, 2)
  }, "")
  paste(made, collapse = "")
}

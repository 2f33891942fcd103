#!/bin/sh
# Writes memfathom's metrics where node_exporter's textfile collector reads them; run it every five minutes by cron.
#   */5 * * * * root MEMFATHOM_DB=/shared/memfathom/fleet.db /usr/local/bin/textfile-collector.sh fleet     (one host)
#   */5 * * * * root /usr/local/bin/textfile-collector.sh status                                           (every GPU node)
# node_exporter is started with --collector.textfile.directory=/var/lib/node_exporter.
set -eu
folder=${TEXTFILE_FOLDER:-/var/lib/node_exporter}
# --output replaces the file at once: the collector never reads half of it.
case ${1:-} in
  fleet) memfathom fleet metrics --output "$folder/memfathom_fleet.prom" ;;
  status) memfathom status --format openmetrics --output "$folder/memfathom.prom" ;;
  *) echo "usage: textfile-collector.sh fleet|status" >&2; exit 2 ;;
esac

#!/bin/sh
# Makes a certificate authority and the webhook's certificate for five years, where no cert-manager does:
#   make-certificate.sh FOLDER [NAMESPACE]    then create the Secret and set caBundle as README.md says
set -eu
folder=$1 service=memfathom-admission.${2:-memfathom}.svc
mkdir -p "$folder" && cd "$folder"
umask 077
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1825 -subj "/CN=memfathom admission CA" \
  -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign" -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$service" -keyout tls.key -out request.pem 2>/dev/null
printf 'subjectAltName=DNS:%s,DNS:%s.cluster.local\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n' "$service" "$service" > extensions
openssl x509 -req -in request.pem -CA ca.crt -CAkey ca.key -CAcreateserial -days 1825 -extfile extensions -out tls.crt 2>/dev/null
rm -f request.pem extensions ca.srl
echo "caBundle: $(base64 -w 0 < ca.crt)"

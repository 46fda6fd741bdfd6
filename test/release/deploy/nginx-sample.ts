/** The sample for nginx, where no other user and no folder of the system is needed: its files lie in `directory`. */
export function nginxIn(directory: string, sample: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const folders = kinds.map((kind) => `${kind}_temp_path ${directory}/${kind};`).join(' ');
  return sample.replace('/run/nginx.pid', `${directory}/nginx.pid`).replace('http {', `http { ${folders}`);
}
